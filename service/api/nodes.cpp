#include <algorithm>

#include <fmt/format.h>

#include "service/api/job_json.hpp"
#include "service/api/routes.hpp"

namespace troupe::service {
namespace {

Response list_nodes(NodeRegistry& nodes, const Request&) {
  auto rows = Json::array();
  for (const auto& node : nodes.rows()) rows.push_back(json_of(node));
  return answer(rows);
}

Response add_node(NodeRegistry& nodes, const Request& request) {
  const auto body = request.json();
  if (!body) return failure(body.error());
  if (!body->contains("address") || !(*body)["address"].is_string())
    return failure(400, "usage", "address: it must be a string like h1:4242");
  const auto node = nodes.add((*body)["address"].get<std::string>());
  return node ? answer(json_of(*node), 201) : failure(node.error());
}

Response remove_node(NodeRegistry& nodes, const Request& request) {
  const auto& address = request.parameter("address");
  const auto removed = nodes.remove(address);
  if (!removed) return failure(removed.error());
  return *removed ? answer_nothing() : failure(404, "unknown", fmt::format("there is no node {}", address));
}

}  // namespace

void add_node_routes(Router& router, Context& context) {
  const auto add = [&](Method method, const std::string& path, Role role,
                       Response (*handle)(NodeRegistry&, const Request&)) {
    router.add({.method = method,
                .pattern = "/api/v1/nodes" + path,
                .role = role,
                .where = Where::jobs,
                .handler = [&context, handle](const Request& request) {
                  if (context.nodes == nullptr) return failure(503, "config", "this service asks no nodes");
                  return handle(*context.nodes, request);
                }});
  };
  add(Method::get, "", Role::read, list_nodes);
  add(Method::post, "", Role::admin, add_node);
  add(Method::del, "/{address}", Role::admin, remove_node);
}

}  // namespace troupe::service
