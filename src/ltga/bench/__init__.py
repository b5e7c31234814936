"""Speed and memory against PyG's GATv2Conv, always as ratios measured in one run."""
