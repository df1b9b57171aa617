"""What the assistant does: takes invitations in, decides, answers once, learns on, and forgets when told to."""
