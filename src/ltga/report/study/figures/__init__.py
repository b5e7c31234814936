"""Figures of the study: functions from plain values to matplotlib figures."""
