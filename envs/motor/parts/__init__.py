"""Parts of a drive: each owns what it remembers, what it shows and what it costs; a drive composes them."""
