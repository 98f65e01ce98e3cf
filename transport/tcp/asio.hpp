/// The parts of Boost.Asio that tcp uses. Include this header instead of Asio's own.
#pragma once

#include <utility>  // Asio 1.74's awaitable.hpp uses std::exchange and does not include it

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace troupe::transport {

namespace asio = boost::asio;
using asio::ip::tcp;
using SystemError = boost::system::error_code;

}  // namespace troupe::transport
