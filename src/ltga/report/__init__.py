"""Records and explanations as something to read: pages."""
