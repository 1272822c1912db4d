"""Reference players: growers' rules."""
