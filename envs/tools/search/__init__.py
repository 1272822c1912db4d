"""Questions of several look-ups, and a corpus to answer them from."""
