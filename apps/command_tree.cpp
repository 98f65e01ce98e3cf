#include "apps/command_tree.hpp"

#include <algorithm>

namespace troupe::apps {
namespace {

void add(const Command& command, CLI::App& app, std::list<Parsed>& all) {
  app.set_help_flag("-h,--help", "this help");
  app.allow_extras();  // dispatch() reports unknown arguments
  app.require_subcommand(0, 1);
  all.push_back({&command, &app, command.declare ? command.declare(app) : nullptr});
  for (const auto& sub : command.subcommands) add(sub, *app.add_subcommand(sub.name, sub.summary), all);
}

}  // namespace

const Command& program() {
  static const Command root{
      .name = "troupe",
      .summary = "Troupe trains neural networks with actors.",
      .examples =
          "  troupe help train      the flags of a command, the keys of a configuration\n"
          "  troupe train configs/glyphs-easgd.toml\n"
          "  troupe train configs/mnist-bsp.toml --set cluster.workers=4 --json\n"
          "  troupe train --resume runs/20260102-030405-mnist-bsp\n"
          "  troupe strategies easgd\n"
          "  troupe doctor\n",
      .declare = nullptr,
      .subcommands = {train(),  launch(), simulate(),   replay(),  grid(),         plot(),      compare(),
                      runs(),   check(),  eval(),       predict(), export_model(), data_sets(), strategies(),
                      models(), bench(),  node(),       nodes(),   serve(),        top(),       watch(),
                      certs(),  doctor(), completion(), man(),     supervise()}};
  return root;
}

std::list<Parsed> declare_all(CLI::App& app) {
  std::list<Parsed> all;
  add(program(), app, all);
  app.add_flag("--version")->description("the program's version");
  return all;
}

const Parsed* subcommand(const std::list<Parsed>& all, const Parsed& parent, std::string_view name) {
  const auto is_it = [&](const Parsed& one) {
    return one.app->get_parent() == parent.app && one.command->name == name;
  };
  const auto found = std::ranges::find_if(all, is_it);
  return found == all.end() ? nullptr : &*found;
}

}  // namespace troupe::apps
