#pragma once

// A small /proc and KVM debugfs in a temporary directory, laid out as the kernel does it, for code
// that takes a root path.

#include <sys/types.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/fakes/temporary_folder.h"

namespace vcpulse::fakes {

class ProcDir {
 public:
  ProcDir() { std::filesystem::create_directories(root_ / "proc"); }
  ProcDir(const ProcDir&) = delete;
  ProcDir& operator=(const ProcDir&) = delete;
  ~ProcDir() { std::filesystem::remove_all(root_); }

  std::string root() const { return root_.string(); }
  std::filesystem::path Path(const std::string& below_root) const { return root_ / below_root; }

  // A process with its main thread. `links` are the targets of its descriptors 0, 1, ...
  void AddProcess(pid_t pid, const std::string& name, const std::vector<std::string>& arguments,
                  const std::vector<std::string>& links, pid_t parent = 1,
                  uint64_t start_ticks = 1000) {
    const std::string base = "proc/" + std::to_string(pid);
    Write(base + "/stat", Stat(pid, name, 'S', parent, start_ticks, 0));
    Write(base + "/comm", name + "\n");
    Write(base + "/status", Status(pid, pid, {pid}));
    std::string cmdline;
    for (const std::string& argument : arguments) cmdline += argument + '\0';
    Write(base + "/cmdline", cmdline);
    std::filesystem::create_directories(root_ / base / "fd");
    for (size_t fd = 0; fd < links.size(); ++fd) AddLink(pid, static_cast<int>(fd), links[fd]);
    AddThread(pid, pid, name, start_ticks);
  }

  // Adds or replaces a thread. `namespace_ids` is its NSpid line, by default the TID alone.
  void AddThread(pid_t pid, pid_t tid, const std::string& name, uint64_t start_ticks,
                 uint64_t guest_ticks = 0, std::vector<pid_t> namespace_ids = {}) {
    if (namespace_ids.empty()) namespace_ids = {tid};
    const std::string base = "proc/" + std::to_string(pid) + "/task/" + std::to_string(tid);
    Write(base + "/stat", Stat(tid, name, 'S', 1, start_ticks, guest_ticks));
    Write(base + "/comm", name + "\n");
    Write(base + "/status", Status(pid, tid, namespace_ids));
    // The kernel answers /proc/TID too, without listing it; a directory tree has to list it. It
    // looks like a process without descriptors and command line, which discovery passes over.
    if (tid != pid) {
      Write("proc/" + std::to_string(tid) + "/stat", Stat(tid, name, 'S', 1, start_ticks, 0));
      Write("proc/" + std::to_string(tid) + "/status", Status(pid, tid, namespace_ids));
    }
  }

  void RemoveThread(pid_t pid, pid_t tid) {
    std::filesystem::remove_all(root_ / "proc" / std::to_string(pid) / "task" /
                                std::to_string(tid));
    if (tid != pid) std::filesystem::remove_all(root_ / "proc" / std::to_string(tid));
  }

  void RemoveProcess(pid_t pid) {
    std::filesystem::remove_all(root_ / "proc" / std::to_string(pid));
  }

  void SetProcessState(pid_t pid, const std::string& name, char state, uint64_t start_ticks) {
    Write("proc/" + std::to_string(pid) + "/stat", Stat(pid, name, state, 1, start_ticks, 0));
  }

  void AddLink(pid_t pid, int fd, const std::string& target) {
    std::filesystem::create_symlink(
        target, root_ / "proc" / std::to_string(pid) / "fd" / std::to_string(fd));
  }

  // As for another user's process without CAP_SYS_PTRACE: there is no fd folder that opens.
  void HideDescriptors(pid_t pid) {
    std::filesystem::remove_all(root_ / "proc" / std::to_string(pid) / "fd");
  }

  // sys/kernel/debug/kvm/PID-FD/vcpuN/pid.
  void AddDebugfsVcpu(pid_t pid, int vm_fd, int vcpu_id, pid_t tid) {
    Write("sys/kernel/debug/kvm/" + std::to_string(pid) + "-" + std::to_string(vm_fd) + "/vcpu" +
              std::to_string(vcpu_id) + "/pid",
          std::to_string(tid) + "\n");
  }

  void Write(const std::string& below_root, const std::string& text) {
    const std::filesystem::path path = root_ / below_root;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }

 private:
  static std::string Stat(pid_t id, const std::string& name, char state, pid_t parent,
                          uint64_t start_ticks, uint64_t guest_ticks) {
    return std::to_string(id) + " (" + name + ") " + state + " " + std::to_string(parent) +
           " 9696 7581 0 -1 138412416 4210 0 0 0 1 3 0 0 20 0 7 0 " + std::to_string(start_ticks) +
           " 465809408 9547 18446744073709551615 1 1 0 0 0 0 268444224 4100 16963 1 0 0 17 0 0 0 "
           "0 " +
           std::to_string(guest_ticks) + " 0 1 1 1 1 1 1 1 0\n";
  }

  static std::string Status(pid_t process, pid_t id, const std::vector<pid_t>& namespace_ids) {
    std::string text = "Name:\tx\nState:\tS (sleeping)\nTgid:\t" + std::to_string(process) +
                       "\nNgid:\t0\nPid:\t" + std::to_string(id) + "\nNSpid:";
    for (const pid_t in_namespace : namespace_ids) text += "\t" + std::to_string(in_namespace);
    return text + "\nNSpgid:\t1\n";
  }

  std::filesystem::path root_ = MakeTemporaryFolder();
};

}  // namespace vcpulse::fakes
