#include "apps/network_arguments.hpp"

namespace troupe::apps {

void add_tls(CLI::App& app, security::TlsFiles& files) {
  app.add_option("--ca", files.ca,
                 "certificate of the cluster's authority (`troupe certs init`); off loopback required")
      ->type_name("FILE");
  app.add_option("--cert", files.certificate, "certificate of this node (`troupe certs node`)")->type_name("FILE");
  app.add_option("--key", files.key, "its key")->type_name("FILE");
}

}  // namespace troupe::apps
