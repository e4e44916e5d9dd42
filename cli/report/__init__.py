"""Reports: one HTML file with plots and tables for answers, and plots as SVG or PNG."""
