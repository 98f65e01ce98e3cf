#include "apps/commands/runs/runs.hpp"

namespace troupe::apps {

Command runs() {
  return {.name = "runs",
          .summary = "find, compare, tag, remove and export runs (docs/runs.md)",
          .examples =
              "  troupe runs list strategy=easgd 'accuracy>0.99'\n"
              "  troupe runs compare mnist-bsp mnist-easgd\n"
              "  troupe runs tag mnist-easgd paper\n",
          .declare = nullptr,
          .subcommands = {runs_list(), runs_show(), runs_compare(), runs_tag(), runs_note(), runs_rm(), runs_export(),
                          runs_rebuild()}};
}

}  // namespace troupe::apps
