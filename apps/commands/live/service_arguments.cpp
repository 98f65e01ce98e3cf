#include "apps/commands/live/service_arguments.hpp"

namespace troupe::apps {

void add_service_access(CLI::App& app, ServiceAccess& access) {
  app.add_option("--token-file", access.token_file,
                 "a file whose first line is the token for the service; without it the variable TROUPE_TOKEN")
      ->type_name("FILE");
  app.add_option("--ca", access.ca,
                 "for https: the authority's certificate (`troupe certs`); without it TROUPE_CA, or the system's "
                 "authorities")
      ->type_name("FILE");
}

}  // namespace troupe::apps
