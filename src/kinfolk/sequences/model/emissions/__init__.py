"""What a hidden state shows: conjugate families of observations, one a file."""
