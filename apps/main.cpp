#include "apps/command_line.hpp"

int main(int argc, char** argv) { return troupe::apps::run(argc, argv); }
