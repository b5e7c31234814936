"""What trained models did: attention edge by edge, and what follows from it."""
