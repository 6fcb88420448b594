"""What is computed a second time: edges, replays, pipelines that a store describes."""
