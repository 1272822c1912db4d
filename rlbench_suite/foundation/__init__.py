"""Write files whole, find the folder of the cache, and refuse unknown names: for every room."""
