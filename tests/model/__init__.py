"""The product against a naive interpreter of plans, on random plans."""
