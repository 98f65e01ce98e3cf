// Only here because CMake needs a source to compile headers for (troupe_headers in Troupe.cmake).
