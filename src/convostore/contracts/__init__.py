"""What a backend and each store promise: prose first, signatures second, and the rules that every backend shares."""
