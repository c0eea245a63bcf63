#include "tests/kvm/run_program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fakes/temporary_folder.h"

namespace vcpulse::kvm_tests {
namespace {

void Redirect(int fd, const std::string& path) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(file, fd);
}

}  // namespace

std::string Contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

RunningProgram::RunningProgram(const std::vector<std::string>& arguments) {
  folder_ = fakes::MakeTemporaryFolder();
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    Redirect(STDOUT_FILENO, folder_ + "/out");
    Redirect(STDERR_FILENO, folder_ + "/err");
    execvp(argv[0], argv.data());
    _exit(127);
  }
}

RunningProgram::~RunningProgram() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::filesystem::remove_all(folder_);
}

void RunningProgram::Signal(int signal) const { kill(pid_, signal); }

Finished RunningProgram::SoFar() const {
  return {.out = Contents(folder_ + "/out"), .err = Contents(folder_ + "/err")};
}

Finished RunningProgram::Wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return {.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
          .out = Contents(folder_ + "/out"),
          .err = Contents(folder_ + "/err")};
}

Finished RunProgram(const std::vector<std::string>& arguments) {
  return RunningProgram(arguments).Wait();
}

std::vector<std::string> Vcpulse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), VCPULSE_BINARY);
  return arguments;
}

}  // namespace vcpulse::kvm_tests
