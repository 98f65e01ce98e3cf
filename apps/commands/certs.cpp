#include <ctime>
#include <memory>

#include <fmt/format.h>

#include "apps/command.hpp"
#include "apps/output.hpp"
#include "transport/security/authority.hpp"

namespace troupe::apps {
namespace {

struct CertsArguments {
  std::string name;
  std::vector<std::string> hosts;
  std::string directory = "certs";
  bool force = false;
};

core::Result<void> run_init(const CertsArguments& arguments) {
  const auto made = security::create_authority(arguments.directory, std::time(nullptr), arguments.force);
  if (!made) return made;
  return print(
      fmt::format("{0}/ca.pem   the authority's certificate, good for 10 years: goes to every node\n"
                  "{0}/ca.key   its key: keep it here, and away from the nodes\n",
                  arguments.directory));
}

core::Result<void> run_node(const CertsArguments& arguments) {
  const auto files =
      security::create_node(arguments.directory, arguments.name, arguments.hosts, std::time(nullptr), arguments.force);
  if (!files) return tl::unexpected(files.error());
  return print(
      fmt::format("{}   the node's certificate, good for 2 years\n"
                  "{}   its key\n"
                  "Copy both and {} to the node, over a channel that you trust.\n"
                  "In ~/.config/troupe, as node.pem, node.key and ca.pem, every command finds them.\n",
                  files->certificate, files->key, files->ca));
}

std::shared_ptr<CertsArguments> common(CLI::App& app, const char* replaced) {
  const auto arguments = std::make_shared<CertsArguments>();
  app.add_option("--directory", arguments->directory, "where the authority is")
      ->type_name("DIR")
      ->capture_default_str();
  app.add_flag("--force", arguments->force, replaced);
  return arguments;
}

Command init_command() {
  return {.name = "init",
          .summary = "make a cluster's authority: a key, and the certificate that every node trusts",
          .examples =
              "  troupe certs init\n"
              "  troupe certs init --directory /safe/certs\n",
          .declare = [](CLI::App& app) -> Action {
            const auto arguments = common(app, "replace an authority: no certificate that it signed is good any more");
            return [arguments] { return run_init(*arguments); };
          }};
}

Command node_command() {
  return {.name = "node",
          .summary = "make a node's key and certificate, signed by the authority",
          .examples =
              "  troupe certs node node1 --host 10.0.0.11 --host node1.cluster.local\n"
              "  troupe certs node node1 --host 10.0.0.11 --force   # renew\n",
          .declare = [](CLI::App& app) -> Action {
            const auto arguments = common(app, "replace the node's key and certificate");
            app.add_option("NAME", arguments->name, "the node's name; it is good as a host name, too")->required();
            app.add_option(
                   "--host", arguments->hosts,
                   "a name or an IP address under which others reach it; may be given several times (the node's "
                   "name and this host's loopback are always in)")
                ->type_name("ADDR")
                ->allow_extra_args(false);
            return [arguments] { return run_node(*arguments); };
          }};
}

}  // namespace

Command certs() {
  return {.name = "certs",
          .summary = "make the certificates without which nodes do not talk to each other (docs/security.md)",
          .examples =
              "  troupe certs init\n"
              "  troupe certs node node1 --host 10.0.0.11\n",
          .declare = nullptr,
          .subcommands = {init_command(), node_command()}};
}

}  // namespace troupe::apps
