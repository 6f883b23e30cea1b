"""What a part of the images contributes to an evaluation, and metrics that accumulate it."""
