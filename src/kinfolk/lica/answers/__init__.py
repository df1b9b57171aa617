"""What a fitted or a loaded linear model of many tasks says."""
