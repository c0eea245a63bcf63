#include "monitor/prometheus/exposition.h"

#include <array>
#include <charconv>
#include <string_view>

#include "kvm/base/text.h"
#include "monitor/http/server.h"

namespace vcpulse::prometheus {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

std::string_view NameOf(Exposition::Type type) {
  switch (type) {
    case Exposition::Type::kCounter:
      return "counter";
    case Exposition::Type::kGauge:
      return "gauge";
    case Exposition::Type::kHistogram:
      return "histogram";
  }
  return "untyped";
}

void AppendEscaped(std::string& text, std::string_view value) {
  while (!value.empty()) {
    const size_t length = Utf8SequenceLength(value);
    const char first = value.front();
    if (length == 0 || first == '\0') {  // Prometheus takes a zero for the end of the text
      text += kReplacement;
    } else if (first == '\n') {
      text += "\\n";
    } else {
      if (first == '\\' || first == '"') text += '\\';
      text += value.substr(0, length);
    }
    value.remove_prefix(length == 0 ? 1 : length);
  }
}

}  // namespace

std::string NumberText(double value) {
  std::array<char, 400> digits{};  // as many as the smallest double has
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed)
          .ptr;
  return {digits.data(), end};
}

void Exposition::Begin(std::string_view name, Type type, std::string_view help) {
  family_ = name;
  text_.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ");
  text_.append(name).append(" ").append(NameOf(type)).append("\n");
}

void Exposition::Add(const Labels& labels, uint64_t value, std::string_view suffix) {
  AddLine({labels.begin(), labels.end()}, std::to_string(value), suffix);
}

void Exposition::Add(const Labels& labels, double value, std::string_view suffix) {
  AddLine({labels.begin(), labels.end()}, NumberText(value), suffix);
}

void Exposition::Add(std::span<const Label> labels, uint64_t value) {
  AddLine(labels, std::to_string(value), "");
}

void Exposition::AddLine(std::span<const Label> labels, std::string_view value,
                         std::string_view suffix) {
  text_.append(family_).append(suffix);
  char separator = '{';
  for (const auto& [name, label] : labels) {
    if (label.empty()) continue;
    text_ += separator;
    text_.append(name).append("=\"");
    AppendEscaped(text_, label);
    text_ += '"';
    separator = ',';
  }
  if (separator == ',') text_ += '}';
  text_.append(" ").append(value).append("\n");
}

http::Answer AnswerScrape(const http::Request& request, const std::string& title,
                          const std::function<std::string()>& text) {
  if (!http::IsOwnName(request.host, request.port)) {
    return http::AnotherName();
  }
  const std::string_view path = request.target.substr(0, request.target.find('?'));
  if (path == "/metrics") {
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = text()};
  }
  if (path == "/") {
    return {.content_type = "text/html; charset=utf-8",
            .body = "<!DOCTYPE html>\n<title>" + title + "</title>\n<h1>" + title +
                    "</h1>\n<p><a href=\"/metrics\">Metrics</a> for Prometheus</p>\n"};
  }
  return {.status = 404, .body = "there are / and /metrics\n"};
}

}  // namespace vcpulse::prometheus
