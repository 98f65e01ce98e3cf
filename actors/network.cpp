#include "actors/network.hpp"
