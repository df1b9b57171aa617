"""The meeting assistant: answers invitations on its users' behalf, and learns across them how each would answer."""
