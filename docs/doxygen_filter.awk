# Makes of the plain comments of a header those that Doxygen reads: "// " in front of a declaration
# becomes "/// ", behind one "///< ", and so do the lines that go on with it below.
NR == 1 && /^\/\// { print "/// \\file" }
{
  line = $0
  if (match(line, /^ *\/\//)) {
    mark = column > 0 && RLENGTH - 1 == column ? "///<" : "///"
    if (mark == "///") column = 0
    sub(/\/\//, mark, line)
  } else if (match(line, /  \/\/ /)) {
    column = RSTART + 2
    sub(/  \/\/ /, "  ///< ", line)
  } else {
    column = 0
  }
  sub(/ \.\.$/, " ...", line)  # at the end of a line Doxygen takes it for the end of a list
  print line
}
