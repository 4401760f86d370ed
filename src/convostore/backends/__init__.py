"""One module or package per storage; none knows another, none knows a store."""
