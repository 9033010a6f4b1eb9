//! The colours and fonts of figures, as style classes. The names of the classes begin with `fig-`, so that
//! figures do not affect the rest of the page.

/// The number of colours of series. Further series use the first colours again.
pub(super) const COLOURS: usize = 8;

/// Returns the style class of a series with this colour: `fig-s0` to `fig-s7`.
pub(super) fn series_class(colour: usize) -> String {
    format!("fig-s{}", colour % COLOURS)
}

/// The style rules of all figures. A page contains them once.
///
/// In both schemes, marks have a contrast of 3:1 and text one of 4.5:1 (WCAG 2.2, 1.4.11 and
/// 1.4.3). Neighbouring colours differ in lightness as well as in hue.
pub(crate) const STYLE: &str = "\
.fig{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}\
.fig text{font-variant-numeric:tabular-nums}\
.fig-label{fill:#1f2328}.fig-tick{fill:#59636e}.fig-value{fill:#1f2328}\
.fig-grid{stroke:#e1e5ea;stroke-width:1}.fig-axis{stroke:#818b98;stroke-width:1}\
.fig-guide{stroke:#59636e;stroke-width:1.2;stroke-dasharray:2 3}\
.fig-track{fill:#eef1f4}\
.fig-line{fill:none;stroke:currentColor;stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}\
.fig-solid{fill:currentColor}\
.fig-touch{fill:currentColor;fill-opacity:0}\
.fig-touch:hover{fill-opacity:1}\
.fig-cell{fill:#0f5fc2;stroke:#fff;stroke-width:2}\
.fig-cell-value{fill:#14171c}\
.fig-s0{color:#1f6fd0}.fig-s1{color:#c4560b}.fig-s2{color:#0b7f62}.fig-s3{color:#7b4bc9}\
.fig-s4{color:#b8336a}.fig-s5{color:#7a6a00}.fig-s6{color:#3d7fa3}.fig-s7{color:#5c5f66}\
@media screen and (prefers-color-scheme:dark){\
.fig-label,.fig-value{fill:#e8ebef}.fig-tick{fill:#a3acb8}\
.fig-grid{stroke:#2b313a}.fig-axis{stroke:#6b7480}.fig-guide{stroke:#a3acb8}\
.fig-track{fill:#222831}\
.fig-cell{fill:#4e9bff;stroke:#14171c}\
.fig-cell-value{fill:#fff}\
.fig-s0{color:#5aa2ff}.fig-s1{color:#ff9a4d}.fig-s2{color:#3fcfa4}.fig-s3{color:#b795ff}\
.fig-s4{color:#ff7fae}.fig-s5{color:#d9c23c}.fig-s6{color:#86c5e8}.fig-s7{color:#aeb4bd}}";
