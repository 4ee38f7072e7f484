"""Questions about the graph, on any index; pure but for what the index reads."""
