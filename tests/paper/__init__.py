"""Tests of the package `askance.paper`."""
