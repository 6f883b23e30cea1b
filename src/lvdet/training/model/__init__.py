"""The networks: backbones, proposals, heads, one stage or a cascade.

Everything that depends on the objects is computed for all images of a batch at once, in tensors of
fixed sizes with a mask over the places that are taken: no loop over images, and one wait for the
GPU in a training step, where the foreground boxes are counted.
"""
