"""What the package shows by itself: a network with its files (`lenet/`) and the demonstration that trains it."""
