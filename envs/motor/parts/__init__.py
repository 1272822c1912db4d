"""Parts of a drive. Each owns its memory, its observation and its cost; a drive composes them."""
