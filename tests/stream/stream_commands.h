#pragma once

// A collector as a program of its own, what it keeps, and threads to record, for tests of the
// commands that stream.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kvm/base/fd.h"
#include "tests/fakes/http_client.h"
#include "tests/fakes/proc_dir.h"
#include "tests/kvm/run_program.h"

namespace vcpulse::stream_tests {

namespace fs = std::filesystem;
using kvm_tests::Eventually;
using kvm_tests::Finished;
using kvm_tests::RunningProgram;
using kvm_tests::RunProgram;
using kvm_tests::Vcpulse;

inline std::string Contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// `vcpulse collect` into a folder of its own.
class RunningCollector {
 public:
  RunningCollector(const std::string& listen, const std::string& directory,
                   const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"collect", "--listen", listen, "--dir", directory};
    arguments.insert(arguments.end(), more.begin(), more.end());
    program_.emplace(Vcpulse(arguments));
    EXPECT_TRUE(Eventually([this] { return !After("listening on ").empty(); }))
        << program_->SoFar().err;
    address_ = After("listening on ");
  }

  // With the port that it took.
  const std::string& address() const { return address_; }
  std::string Err() const { return program_->SoFar().err; }
  RunningProgram& program() { return *program_; }

  // The rest of the line behind `words`.
  std::string After(const std::string& words) const {
    const std::string text = Err();
    const size_t at = text.find(words);
    const size_t end = at == std::string::npos ? at : text.find('\n', at);
    if (end == std::string::npos) return "";
    return text.substr(at + words.size(), end - at - words.size());
  }

  // How many follow it now. Needs `--status tcp:127.0.0.1:0` among its arguments.
  int followers() const {
    const std::string port = After("status at tcp:127.0.0.1:");
    if (port.empty()) return -1;
    const Fd client = fakes::ConnectTo(static_cast<uint16_t>(std::stoi(port)));
    fakes::Send(client, "GET /metrics HTTP/1.1\r\nHost: localhost:" + port +
                            "\r\nConnection: close\r\n\r\n");
    const std::string text = fakes::ReceiveAll(client);
    const std::string name = "\nvcpulse_collector_followers ";
    const size_t at = text.find(name);
    return at == std::string::npos ? -1 : std::stoi(text.substr(at + name.size()));
  }

  Finished End(int signal = SIGTERM) {
    program_->Signal(signal);
    Finished finished = program_->Wait();
    program_.reset();
    return finished;
  }

 private:
  std::optional<RunningProgram> program_;
  std::string address_;
};

class StreamCommands : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.Path(name).string(); }

  // Folders of the streams that a collector keeps of an agent, by age.
  std::vector<std::string> StreamsOf(const std::string& agent) const {
    std::vector<std::string> streams;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(Path("collected/" + agent), none)) {
      streams.push_back(entry.path().string());
    }
    std::ranges::sort(streams);
    return streams;
  }

  // All files of a stream's folder, one after the other.
  static std::string Joined(const std::string& stream) {
    std::vector<fs::path> files;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(stream, none)) files.push_back(entry.path());
    std::ranges::sort(files);
    std::string all;
    for (const fs::path& file : files) all += Contents(file);
    return all;
  }

  // Record by record: chunk by chunk they are the same bytes, and other programs see the same.
  static void ExpectEqual(const std::string& stream, const std::string& file) {
    EXPECT_TRUE(Joined(stream) == Contents(file)) << stream << " and " << file << " differ";
    const Finished collected = RunProgram(Vcpulse({"export", stream, "--format", "jsonl"}));
    const Finished local = RunProgram(Vcpulse({"export", file, "--format", "jsonl"}));
    EXPECT_EQ(collected.exit_code, 0) << collected.err;
    EXPECT_TRUE(collected.out == local.out);
    EXPECT_EQ(collected.err, "");
  }

  // One line, exit code 2, nothing on stdout.
  static void ExpectRefused(const std::vector<std::string>& arguments,
                            const ::testing::Matcher<std::string>& line) {
    const Finished finished = RunProgram(Vcpulse(arguments));
    EXPECT_EQ(finished.exit_code, 2) << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_THAT(finished.err, ::testing::AllOf(::testing::StartsWith("vcpulse: "), line));
    EXPECT_EQ(std::ranges::count(finished.err, '\n'), 1) << finished.err;
  }

  fakes::ProcDir folder_;
};

}  // namespace vcpulse::stream_tests
