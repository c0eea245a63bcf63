#include "tools/vcpulse/report_page.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <span>

#include "absl/strings/str_cat.h"
#include "kvm/base/output_file.h"
#include "monitor/http/loopback_address.h"
#include "monitor/page/loopback_server.h"
#include "monitor/page/page.h"
#include "monitor/page/served_timeline.h"
#include "tools/vcpulse/commands.h"
#include "tools/vcpulse/same_file.h"
#include "tools/vcpulse/standard_output.h"
#include "tools/vcpulse/timeline_input.h"

namespace vcpulse::tools {

absl::Status CheckPageOptions(const std::string& file, const std::optional<std::string>& html,
                              const std::optional<std::string>& serve) {
  if (serve) {
    if (file == "-") {
      return absl::InvalidArgumentError(
          "--serve reads again and again, and standard input can be read once: name a file");
    }
    absl::Status status = http::ParseLoopbackAddress(*serve).status();
    if (status.ok()) return status;
    return absl::Status(status.code(), absl::StrCat("--serve: ", status.message()));
  }
  if (!html) return absl::OkStatus();
  if (html->empty()) return absl::InvalidArgumentError("--html: the file name is empty");
  return CheckNotSameFile(file, *html, "--html");
}

int WritePage(const page::Contents& contents, const std::string& output) {
  const std::string text = page::RenderPage(contents, false);
  if (output == "-") return WriteStdout(text);
  auto file = OutputFile::Create(output, OutputFile::Appears::kWhenFinished);
  if (!file.ok()) return Fail(file.status());
  absl::Status written =
      (*file)->Append(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  if (written.ok()) written = (*file)->Finish();
  if (!written.ok() && !absl::IsCancelled(written)) return Fail(written);
  return kExitOk;
}

int ServePage(const std::string& file, const std::string& address) {
  const auto where = http::ParseLoopbackAddress(address);
  if (!where.ok()) return Fail(where.status());
  page::ServedTimeline timeline(file);
  // A large file takes a while, and nothing is on the screen yet.
  if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "vcpulse: reading %s\n", file.c_str());
  // What cannot be read is said here, not in a browser.
  if (const auto page = timeline.Page(); !page.ok()) {
    return Fail(ReadFailure(page.status(), file));
  }
  const absl::Status served = page::ServeOnLoopback(
      *where, timeline.AsSource(),
      [](const std::string& url) { return WriteToStdout(absl::StrCat(url, "\n")); });
  if (absl::IsCancelled(served)) return kExitOk;  // nobody reads the URL
  return served.ok() ? kExitOk : Fail(absl::StrCat("--serve: ", served.message()));
}

}  // namespace vcpulse::tools
