"""Readers of sound: files (`sound_files`), the cepstra of their frames (`cepstrum`), and codes (`audio`)."""
