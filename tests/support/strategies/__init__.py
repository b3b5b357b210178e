"""Hypothesis strategies for the values of reclock (extra ``testing``)."""
