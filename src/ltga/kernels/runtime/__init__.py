"""What every backend shares: sorted edges, memory, threads, and what is remembered about a tensor."""
