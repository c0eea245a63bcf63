#include "monitor/page/page.h"

#include <array>
#include <utility>

#include "absl/strings/escaping.h"
#include "kvm/base/text.h"
#include "monitor/page/assets.h"
#include "monitor/page/packing.h"
#include "monitor/report/json_report.h"

namespace vcpulse::page {
namespace {

std::string_view AssetText(std::string_view file) {
  for (const Asset& asset : Assets()) {
    if (asset.file == file) return asset.text;
  }
  return {};
}

std::string Scripts() {
  // One scope for all of them, and none of the page's.
  std::string scripts = "'use strict';\n(() => {\n";
  for (const Asset& asset : Assets()) {
    if (asset.file.ends_with(".js")) scripts += asset.text;
  }
  return scripts + "})();\n";
}

// Replaces each {{name}} of the frame, which has each of them once or more.
std::string Fill(std::string_view frame,
                 std::span<const std::pair<std::string_view, std::string>> values) {
  std::string page;
  while (!frame.empty()) {
    const size_t begin = frame.find("{{");
    page += frame.substr(0, begin);
    if (begin == std::string_view::npos) break;
    const size_t end = frame.find("}}", begin);
    const std::string_view name = frame.substr(begin + 2, end - begin - 2);
    for (const auto& [key, value] : values) {
      if (key == name) page += value;
    }
    frame.remove_prefix(end + 2);
  }
  return page;
}

}  // namespace

std::string RenderPage(std::string_view packed, std::string_view nonce, bool served) {
  const std::array<std::pair<std::string_view, std::string>, 5> values = {{
      {"nonce", std::string(nonce)},
      {"connect", served ? "'self'" : "'none'"},
      {"style", std::string(AssetText("page.css"))},
      {"data", absl::Base64Escape(ToAbsl(Deflate(packed)))},
      {"scripts", Scripts()},
  }};
  return Fill(AssetText("page.html"), values);
}

std::string RenderPage(const Contents& contents, bool served) {
  const report::Report& report = contents.report();
  const auto& session = report.summary.session();
  // The stream's id: random, so that no guest could know it while it was recorded, and the same
  // page comes of the same timeline.
  const std::string nonce = session && !session->stream_id().empty()
                                ? absl::BytesToHexString(session->stream_id())
                                : "vcpulse";
  return RenderPage(
      Pack(contents.collected(), report.Start().value_or(0), report::RenderJson(report), served),
      nonce, served);
}

}  // namespace vcpulse::page
