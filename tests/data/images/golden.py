#!/usr/bin/env python3
"""Usage: golden.py > golden.hpp

Golden values of tests/data/images/: resizing as PIL does it, and colour jitter as torchvision does it on PIL images. Needs PIL and
torchvision (made with PIL 9.4 and torchvision 0.14)."""
import PIL.Image
import numpy
import torchvision.transforms.functional as functional

WIDTH, HEIGHT = 23, 17


def picture():
    """Channel c at (x, y): (37 x + 91 y + 53 c + x y) mod 256."""
    y, x, c = numpy.meshgrid(range(HEIGHT), range(WIDTH), range(3), indexing="ij")
    return PIL.Image.fromarray(((37 * x + 91 * y + 53 * c + x * y) % 256).astype("uint8"))


def planes(image):
    return numpy.asarray(image).transpose(2, 0, 1).reshape(-1).tolist()


def show(name, values):
    lines = [", ".join(str(v) for v in values[i : i + 24]) for i in range(0, len(values), 24)]
    print(f"inline const std::vector<int> {name}{{\n    " + ",\n    ".join(lines) + "};")


print("/// Made by tests/data/images/golden.py: channel by channel, row by row.\n#pragma once\n\n#include <vector>\n\nnamespace troupe::data::golden {\n")
show("kReduced", planes(picture().resize((7, 5), PIL.Image.BILINEAR)))
show("kEnlarged", planes(picture().crop((2, 3, 6, 6)).resize((9, 7), PIL.Image.BILINEAR)))
show("kWithinPixels", planes(picture().resize((6, 4), PIL.Image.BILINEAR, box=(1.5, 2.25, 20.75, 15.5))))
small = picture().crop((0, 0, 6, 5))
show("kBrightness", planes(functional.adjust_brightness(small, 1.3)))
show("kContrast", planes(functional.adjust_contrast(small, 0.6)))
show("kSaturation", planes(functional.adjust_saturation(small, 1.7)))
print("\n}  // namespace troupe::data::golden")
