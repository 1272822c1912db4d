"""Mathematics and words that several families share."""
