#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "monitor/http/server.h"

namespace vcpulse::prometheus {

// Writes Prometheus's text exposition format, version 0.0.4. A family is begun once, and all of its
// series follow it. Pure.
class Exposition {
 public:
  enum class Type { kCounter, kGauge, kHistogram };
  // Name and value each. Names are letters, digits and _; a value may be any bytes: what is no
  // UTF-8 is replaced by U+FFFD. A label without a value is left out, which means the same.
  using Label = std::pair<std::string_view, std::string_view>;
  using Labels = std::initializer_list<Label>;

  // `help` is one line.
  void Begin(std::string_view name, Type type, std::string_view help);
  // One series of the family that was begun last. `suffix` is that of a histogram's series.
  void Add(const Labels& labels, uint64_t value, std::string_view suffix = "");
  void Add(const Labels& labels, double value, std::string_view suffix = "");
  void Add(std::span<const Label> labels, uint64_t value);

  const std::string& text() const { return text_; }

 private:
  void AddLine(std::span<const Label> labels, std::string_view value, std::string_view suffix);

  std::string text_;
  std::string family_;
};

// The shortest decimal without an exponent that is read as `value` again; `value` is finite.
std::string NumberText(double value);

// What a server of metrics answers: `text` at /metrics, at / a page with `title` that links to it,
// else 404. A request that names another host is refused (421), as http::IsOwnName says: this is
// for servers on loopback alone.
http::Answer AnswerScrape(const http::Request& request, const std::string& title,
                          const std::function<std::string()>& text);

}  // namespace vcpulse::prometheus
