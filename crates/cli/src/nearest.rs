//! "Did you mean": the known name that is closest to a mistyped one.

/// The longest name that is compared; longer ones are not typing errors.
const LONGEST: usize = 253;

/// A question to append to an error, or nothing if no name is close.
pub(crate) fn did_you_mean<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(typed, known).map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

/// The closest name, if it is close enough to be a typing error.
pub(crate) fn nearest<'a>(typed: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (typed.chars().count() / 3).clamp(1, 3);
    let near = known.filter(|name| *name != typed && name.len() <= LONGEST && typed.len() <= LONGEST);
    let near = near.map(|name| (distance(typed, name), name));
    near.filter(|(distance, name)| *distance <= most || name.strip_prefix('v') == Some(typed))
        .min_by_key(|(distance, name)| (*distance, name.len()))
        .map(|(_, name)| name)
}

/// How many insertions, deletions, substitutions and swaps of neighbours turn one text into the
/// other (optimal string alignment).
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let at = |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX - 1);
            let mut best = (at(&row, j) + usize::from(a != b)).min(at(&row, j + 1) + 1).min(at(&next, j) + 1);
            let swapped = i > 0 && j > 0 && one.get(i - 1) == Some(b) && other.get(j - 1) == Some(a);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_recognised_and_another_name_is_not() {
        let known = ["helloworld", "goodbye", "v1.2.0", "v1.10.0"];
        let meant = |typed: &str| nearest(typed, known.into_iter());
        assert_eq!(meant("hellowrold"), Some("helloworld"));
        assert_eq!(meant("goodby"), Some("goodbye"));
        assert_eq!(meant("1.10.0"), Some("v1.10.0"));
        assert_eq!(meant("monitoring"), None);
        assert_eq!(meant("goodbye"), None);
        assert_eq!(did_you_mean("helloword", known.into_iter()), "; did you mean helloworld?");
    }

    #[test]
    fn swapped_neighbours_are_one_error() {
        for (one, other, expected) in
            [("", "abc", 3), ("ab", "ba", 1), ("kitten", "sitting", 3), ("a", "a", 0)]
        {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
