#include "apps/command.hpp"

namespace troupe::apps {

Command data_sets() {
  return {.name = "data",
          .summary = "fetch data sets, look at them, convert them, and measure their mean (docs/formats/data.md)",
          .examples =
              "  troupe data fetch mnist\n"
              "  troupe data inspect --set data.name=glyphs --sheet glyphs.png\n"
              "  troupe data convert --set data.name=cifar10 --to shards --output cifar10-shards\n",
          .declare = nullptr,
          .subcommands = {data_fetch(), data_inspect(), data_convert(), data_mean()}};
}

}  // namespace troupe::apps
