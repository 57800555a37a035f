"""One thread for torch: the problems here are too small to share between cores."""

import torch

torch.set_num_threads(1)
