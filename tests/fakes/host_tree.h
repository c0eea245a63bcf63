#pragma once

// Host trees (a small /proc and /sys) for code that takes a root path, unpacked from the manifests
// in tests/data/hosts. The README.md there has their format.

#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>

#include "tests/fakes/temporary_folder.h"

namespace vcpulse::fakes {

// The bytes that one line of text stands for.
inline std::string UnescapedLine(const std::string& line) {
  std::string text;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\') {
      text += line[i];
    } else if (++i == line.size()) {
      return text;
    } else if (line[i] == '0' || line[i] == '\\') {
      text += line[i] == '0' ? '\0' : '\\';
    } else {
      throw std::runtime_error(std::string("unknown escape \\") + line[i]);
    }
  }
  return text + '\n';
}

// Unpacks a manifest into the directory `root`. Throws std::runtime_error with the file and number
// of the first line that is malformed or cannot be written.
inline void UnpackHost(const std::string& manifest, const std::filesystem::path& root) {
  std::ofstream file;  // open while indented lines belong to it
  file.exceptions(std::ios::failbit | std::ios::badbit);
  const auto make = [&root](const std::string& path) {
    const std::filesystem::path from_root = "/" + path;
    if (path.empty() || from_root.lexically_normal().string() != "/" + path) {
      throw std::runtime_error("not a path below the root");
    }
    if (exists(symlink_status(root / path))) throw std::runtime_error("path listed twice");
    create_directories((root / path).parent_path());
    return root / path;
  };
  const auto unpack = [&](const std::string& line) {
    if (line.starts_with("  ")) {
      if (!file.is_open()) throw std::runtime_error("text of no file");
      file << UnescapedLine(line.substr(2)) << std::flush;
      return;
    }
    if (file.is_open()) file.close();
    if (line.empty() || line.front() == '#') return;
    const size_t equals = line.find(" = "), arrow = line.find(" -> ");
    if (equals < arrow) {
      file.open(make(line.substr(0, equals)));
      file << UnescapedLine(line.substr(equals + 3)) << std::flush;
      file.close();
    } else if (arrow != std::string::npos) {
      std::filesystem::create_symlink(line.substr(arrow + 4), make(line.substr(0, arrow)));
    } else if (line.back() == ':') {
      file.open(make(line.substr(0, line.size() - 1)));
    } else if (line.back() == '/') {
      create_directory(make(line.substr(0, line.size() - 1)));
    } else {
      throw std::runtime_error("expected PATH = TEXT, PATH:, PATH -> TARGET or PATH/");
    }
  };
  std::ifstream lines(manifest);
  if (!lines) throw std::runtime_error("cannot read " + manifest);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    try {
      unpack(line);
    } catch (const std::exception& e) {
      throw std::runtime_error(manifest + ":" + std::to_string(number) + ": " + e.what());
    }
  }
}

// The root of tests/data/hosts/NAME.host, unpacked once per process and removed at its exit. Throws
// as UnpackHost does. Not for several threads at once.
inline std::string HostTree(const std::string& name) {
  static const struct Folder {
    std::filesystem::path path = MakeTemporaryFolder();
    ~Folder() { std::filesystem::remove_all(path); }
  } folder;
  static std::set<std::string> unpacked;
  if (folder.path.empty()) throw std::runtime_error("cannot make a temporary folder");
  const std::filesystem::path root = folder.path / name;
  if (!unpacked.contains(name)) UnpackHost(VCPULSE_TEST_DATA "/hosts/" + name + ".host", root);
  unpacked.insert(name);
  return root.string();
}

}  // namespace vcpulse::fakes
