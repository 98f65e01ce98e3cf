/// One connection: reads requests one after the other, lets them be answered, and ends itself. Thread rule: the connections' thread.
#pragma once

#include <string>

#include <boost/asio/ip/tcp.hpp>

#include "service/http/connections.hpp"

namespace troupe::service {

enum class Welcome : std::uint8_t {
  served,
  too_many_of_address,  ///< told so (429), and closed
  too_many,             ///< the same with 503
};

/// The session keeps itself alive. `connections` outlives it. A served one leaves AddressLimits at its end.
void start_session(boost::asio::ip::tcp::socket socket, const std::string& peer, Connections& connections,
                   Welcome welcome);

}  // namespace troupe::service
