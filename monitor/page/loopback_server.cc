#include "monitor/page/loopback_server.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>

#include "monitor/http/loopback_address.h"

namespace vcpulse::page {

absl::Status ServeOnLoopback(const http::Endpoint& endpoint, const Source& source,
                             const std::function<absl::Status(const std::string& url)>& listening) {
  boost::asio::io_context context(1);
  boost::asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([](boost::system::error_code, int) {});  // the only work: run() waits for it
  const auto server = http::Server::Start(
      endpoint, [&source](const http::Request& request) { return Answer(request, source); });
  if (!server.ok()) return server.status();
  absl::Status told = listening(http::UrlOf(endpoint.host, (*server)->port()));
  if (!told.ok()) return told;
  context.run();
  return absl::OkStatus();
}

}  // namespace vcpulse::page
