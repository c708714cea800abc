"""Certificates: bounds of the regret made of what happened, from sums that a learner keeps."""
