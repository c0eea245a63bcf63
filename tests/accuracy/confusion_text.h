#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/accuracy/figures.h"
#include "tests/accuracy/statistics.h"

namespace vcpulse::accuracy {

// Tables in Markdown.
struct NamedFigures {
  std::string name;  // of the classifier
  Figures figures;
};

std::string MatrixText(std::span<const NamedFigures> classifiers);
std::string FiguresText(std::span<const NamedFigures> classifiers);
std::string GroupsText(const std::string& title, const std::map<std::string, Group>& groups);
// One line per CPU model, or per anything else that `title` says.
std::string SharesText(const std::string& title,
                       std::span<const std::pair<std::string, Figures>> lines);
// One line per cut.
std::string SweepText(std::span<const std::pair<double, Figures>> sweep);

// "98.7 % (98.1-99.1, 1234/1250)", "-" of nothing.
std::string ToText(const Share& share);

}  // namespace vcpulse::accuracy
